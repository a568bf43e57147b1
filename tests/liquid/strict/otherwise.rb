# Finds templates that both parsers of Liquid accept and that show different things, and writes otherwise.jsonl.
#
#   ruby tests/liquid/strict/otherwise.rb liquid tests/liquid/strict/verdicts.jsonl > tests/liquid/strict/otherwise.jsonl
#   cargo test -p theme otherwise
#
# `liquid` is the folder of generate.rb. Each line is an array: a template that `strict2` and `lax` accept, and 1 if they show different things in
# one of three shops, or 0. The first line is the version.

require_relative 'shops'

VALUES = ["a . b", "a .b", "a. b", "a [ 'b' ]", "a[ 'b' ]", "a['b' ]", "a['b']", '( 1 .. 2 )', '(1 ..2)', '(1.. 2)', '( 1..2)', 'nil', 'null', 'blank',
          'empty', 'true', 'false', "'a,b'", "'a, b'", '"a,b"', "'a:b'", "'a b'", "'a|b'", 'a.b.c.first', 'a.b.c[0]', 'a[d]', 'a[d.first]', 'a[ d . first ]',
          '-1', '1.5', 'a-b', 'a?', 'self.a', "self['a']", 'a.size', '(1..a.c)', '( 1..a.c )', "'x: 1'", "'k: b'", %q("it's"), %q('say "a"')].freeze

# Where a value can stand, with something behind it that shows what was read.
PLACES = [
  '{% if $ %}T{% else %}F{% endif %}', '{% if b == $ %}T{% else %}F{% endif %}', '{% if b==$ %}T{% else %}F{% endif %}', '{% if $ == b or c %}T{% else %}F{% endif %}',
  '{% if $==b %}T{% else %}F{% endif %}', "{% if $ contains 'b' %}T{% else %}F{% endif %}", '{% unless $ %}T{% else %}F{% endunless %}', '{% unless $!=b %}T{% endunless %}',
  '{% if false %}{% elsif $ %}T{% endif %}', '{% if false %}{% elsif c and $ %}T{% endif %}', '{% if c>$ %}T{% endif %}', '{% if c <$ %}T{% endif %}', '{% if c> $ %}T{% endif %}',
  "{% case $ %}{% when b %}T{% when '5' %}5{% when 1 %}1{% when nil %}N{% else %}F{% endcase %}", '{% case b %}{% when $ %}T{% else %}F{% endcase %}',
  "{% case b %}{% when 'b', $ %}T{% else %}F{% endcase %}", '{% case b %}{% when $ or 1 %}T{% else %}F{% endcase %}', '{% case 7 %}{% when 3 or $ %}T{% else %}F{% endcase %}',
  '{% for i in $ %}[{{ i | f }}]{% else %}E{% endfor %}', '{% for i in x limit: $ %}[{{ i | f }}]{% else %}E{% endfor %}', '{% for i in x limit:$ %}[{{ i | f }}]{% endfor %}',
  '{% for i in x offset: $ %}[{{ i | f }}]{% else %}E{% endfor %}', '{% for i in $ reversed limit: 2 %}[{{ i | f }}]{% else %}E{% endfor %}',
  '{% for i in x offset : 1 limit : $ %}[{{ i }}]{% endfor %}', '{% tablerow i in $ %}[{{ i | f }}]{% endtablerow %}', '{% tablerow i in x limit: $ %}[{{ i | f }}]{% endtablerow %}',
  '{% tablerow i in x cols: $ offset: 1 %}[{{ i | f }}]{% endtablerow %}', "{% for i in (1..3) %}{% cycle $, 'z' %}{% endfor %}", "{% for i in (1..3) %}{% cycle 'z', $ %}{% endfor %}",
  "{% for i in (1..3) %}{% cycle 'g': $, 'z' %}{% endfor %}", "{% for i in (1..3) %}{% cycle $: 'y', 'z' %}{% cycle 'y', 'z' %}{% endfor %}", '{% for i in (1..3) %}{% cycle $ %}{% endfor %}',
  "{% for i in (1..3) %}{% cycle 'z', $, %}{% endfor %}", '{{ $ | f }}', '{{ b | f: $ }}', '{{ b | f: k: $, l: 1 }}', '{% assign i = $ %}{{ i | f }}', '{% assign i = b | f: $ %}{{ i | f }}',
  '{% echo $ | f %}', '{{ x[$] | f }}'
].freeze

PARTIALS = ["'s', k: $", "'s' with $", "'s' for $", "'s' with $ as k", "'s', k: $, l: 1", "'s' k: $ l: 1", '$', '$, k: 1'].freeze

MARKUPS = {
  'render' => ["'s'with a.b", "'s'for x", "'s' with b as k,", "'s',", "'s', k:b,", "'s' , k : b", "'s' as k", "'s' as k, k: 2", "'s', k: 1, k: 2", "'a:b'", "'s:b', k: 1", "'s' k: b",
               "'s' for x as k, l: 2", "'s', with: b", "'s' with with", "'s' for for", "'s' as as", "'s' for as as k", "'s', as: b", "'s' with x as k-l", "'s' for x as k?"],
  'include' => ["'s'with b", "'s'for x as k", "'s', k:b", "'s', k : b , l : c", "'k:b'", "'x: b'", 's', 'a.b', 's with b', 's, k: 1', "'s' with b.c, with: 2"],
  'cycle' => ["'a', 'b'", "'a','b'", "a.b, 'c'", "'a' , 'b' ,", "'a': 'b', 'c'", "a: 'b', 'c'", "'g' : 'b', 'c'", "'a:b', 'c'", 'a:b, c', "'a' : b , c", 'nil', 'nil, nil', "nil: 'a', 'b'",
              "'g': nil", "'a', nil", "'a', nil, 'b'", "'g': 'a', nil", "'a', null, 'b'", 'true, false', "blank, 'a'", "empty, 'a'", "'', 'a'", "'a', ''", "'a;b', 'c'", %q('a', "b, c"),
              "'1,2', '3'", "'col-1, col-2','x'", '1,2,3', '1, 2.5', '-1, 1', "(1..2), 'a'", "x, 'a'", "'g': x, 'a'", "nil.a, 'b'", "'nil', 'b'", "'a b', 'c'", "nil , 'b' , 'c'",
              "'http://a', 'b'", "'a' : 'b:c', 'd'", %q("a: b", 'c'), "'x' , 'a: b'"],
  'for' => ['i in x limit:1 offset:1', 'i in x,limit:2', 'i in x limit:1 limit:2', 'i-j in x', 'i in (1..4) reversed', 'i in x reversed,limit:2', "i in 'a:b'", 'i in x limit : 2'],
  'tablerow' => ['i in x cols:2', 'i in x, cols:2', 'i in x,cols:2,limit:1', 'i in x cols:2 cols:1', 'i in x range: 3', "i in 'x cols: 1'", "i in x limit: 'cols: 1'", 'i in (1..4) cols:2']
}.freeze

templates = PLACES.product(VALUES).map { |place, value| place.sub('$') { value } }
%w[render include].product(PARTIALS, VALUES) { |name, place, value| templates << "{% #{name} #{place.sub('$') { value }} %}" }
MARKUPS.each do |name, markups|
  markups.each do |markup|
    tag = "{% #{name} #{markup} %}"
    tag += "[{{ i }}]{% end#{name} %}" if %w[for tablerow].include?(name)
    templates << "{% for n in (1..4) %}#{tag};{% endfor %}"
  end
end
# The templates of generate.rb, with something that they show.
File.foreach(ARGV.fetch(1), chomp: true).drop(1).each do |line|
  template, strict2, _, lax = JSON.parse(line)
  next unless strict2 == 0 && lax == 0
  templates << with_bodies(template)
end

puts JSON.generate(['Liquid', Liquid::VERSION])
templates.uniq.each do |template|
  # Liquid can't read `liquid` in `liquid` without line numbers.
  next if template.match?(/liquid liquid|\nliquid/)
  shown = [:strict2, :lax].map do |mode|
    shown(template, mode)
  rescue Liquid::SyntaxError
    nil
  end
  puts JSON.generate([template, shown.uniq.size - 1]) if shown.all?
end
