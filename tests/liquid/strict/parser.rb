# Loads Liquid from the clone that the first argument names.

require 'json'
require 'strscan'

# Older versions of Ruby lack two methods that Liquid uses.
class StringScanner
  def peek_byte = string.getbyte(pos)
  def scan_byte = string.getbyte(pos)&.tap { self.pos += 1 }
end unless StringScanner.method_defined?(:scan_byte)

$LOAD_PATH.unshift File.join(ARGV.fetch(0), 'lib')
require 'liquid'
