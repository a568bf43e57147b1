# What templates show in three shops. For mends.rb and otherwise.rb.

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

# The template with something in its blocks, and its variable behind it, so that it is seen what was read.
def with_bodies(template)
  template.gsub(/%\}\{% end/, '%}T{{ i | f }}{% end').gsub(/\n(end\w+)/) { "\necho 'T'\necho i\n#{$1}" } + '{{ x | f }}'
end
