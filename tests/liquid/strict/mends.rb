# Asks Liquid itself about the mends of `lamplighter theme fix`, and writes mends.jsonl.
#
#   cargo run -p theme-scripts --example mends -- tests/liquid/strict/verdicts.jsonl > /tmp/mends.jsonl
#   ruby tests/liquid/strict/mends.rb liquid /tmp/mends.jsonl > tests/liquid/strict/mends.jsonl
#   cargo test -p theme every_mend
#
# `liquid` is the folder of generate.rb. Each line is an array: the old template, the mended one, and the verdict. It is 0 if `strict2` accepts
# the mended template and it shows what the old one shows with the tolerant parser (`lax`); 1 if it is accepted and the tolerant parser refuses
# the old one, so that it never showed anything; and otherwise what is wrong. The first line is the version.

require_relative 'parser'

# Filters that show what they were given.
module Shown
  %w[f g].each { |name| define_method(name) { |*given| "#{name}(#{given.map(&:inspect).join(' ')})" } }
end
Liquid::Environment.default.register_filter(Shown)

# Snippets that show their variables.
class Snippets
  NAMES = %w[a b c d i k l s x snippet page true forloop.index forloop.length]
  def read_template_file(name) = "<#{name} #{NAMES.map { |variable| "{{ #{variable} | f }}" }.join(' ')}>"
end

# Three shops: with values at all names, with others of them, and an empty one.
SHOPS = [
  -> { { 'a' => { 'b' => { 'c' => [5, 6], '0' => 'zero' }, 'c' => 2, '0' => 'first', '1' => 'one', 'x' => 'X' }, 'b' => 'b', 'c' => 7, 'd' => [2, 1],
         'i' => 2, 'x' => [3, 1, 2], 'k' => 'k', 'l' => 1.5, 's' => 's', 'x-y' => [1], 'true' => 4, 'nil' => 'NIL', 'contains' => 'C', 'a?' => 'question', '1' => 'I',
         'and' => true, 'or' => 'or', 'in' => [8, 9], 'limit' => 1, 'reversed' => 'r', 'with' => 'w', 'as' => 'z', '-' => 'dash', 'e' => 'E', '_a' => 'u', '1a' => 'N' } },
  -> { { 'a' => [1, 'b', [2, 3], { 'b' => 4 }], 'b' => 1, 'c' => nil, 'd' => false, 'i' => 'a', 'x' => 'x', 'k' => [], 'l' => {}, 's' => 't', 'g' => 3 } },
  -> { {} }
]

def shown(template, mode)
  parsed = Liquid::Template.parse(template, error_mode: mode)
  SHOPS.map do |shop|
    parsed.registers[:file_system] = Snippets.new
    parsed.instance_assigns.clear
    parsed.render(shop.call, registers: { file_system: Snippets.new })
  end
end

puts JSON.generate(['Liquid', Liquid::VERSION])
File.foreach(ARGV.fetch(1), chomp: true) do |line|
  old, new = JSON.parse(line)
  verdict =
    begin
      after = shown(new, :strict2)
      begin
        before = shown(old, :lax)
        if before != after
          "it shows #{after} and not #{before}"
        elsif before != shown(new, :lax)
          'the tolerant parser shows something else'
        else
          0
        end
      rescue Liquid::SyntaxError
        1
      end
    rescue Liquid::SyntaxError => error
      error.message
    end
  puts JSON.generate([old, new, verdict])
end
