# Makes the templates of verdicts.jsonl and asks Liquid itself for its verdicts.
#
#   git clone https://github.com/Shopify/liquid && git -C liquid checkout v5.13.0
#   ruby tests/liquid/strict/generate.rb liquid > tests/liquid/strict/verdicts.jsonl
#   cargo test -p theme strict
#
# For a newer version, check it out and run the same: `git diff` then shows which verdicts changed. Ruby 3.1 or newer, without gems.
#
# Each line is an array: the template, then what `strict2`, `strict` and `lax` say: 0 if they accept it, or the message of `strict2`, and 1
# for the others. The first line is the version. `render block` is missing, because only Shopify has it.

require_relative 'parser'

# What Liquid says without the place, or nil.
def refusal(template, mode)
  Liquid::Template.parse(template, error_mode: mode, line_numbers: true)
  nil
rescue Liquid::Error => error
  error.to_s(false).delete_suffix(error.markup_context ? " #{error.markup_context}" : '')
end

# Valid markups by tag, cut into their tokens. Blanks stand between all tokens.
MARKUPS = {
  '' => ["a", "a . b", "a [ 'b' ] . c", "( 1 .. a )", "a | f", "a | f : b , 'c'", "a | f : k : b | g", "'a' | f : 1.5 ,"],
  'echo' => ["a | f : b"],
  'assign' => ["x = a", "x = 'a' | f : b , k : c"],
  'capture' => ["x"],
  'increment' => ["x"],
  'decrement' => ["x"],
  'if' => ["a", "a == 'b'", "a and b . c", "a contains 'b' or 1 <> c"],
  'unless' => ["a != b"],
  'elsif' => ["a >= 1 and b"],
  'case' => ["a . b"],
  'when' => ["1", "'a' , b", "1 or 'b'"],
  'for' => ["i in a", "i in a reversed", "i in ( 1 .. 2 ) limit : 2 , offset : a", "i in a . b reversed , offset : continue"],
  'tablerow' => ["i in a", "i in a . b cols : 2 , limit : 3", "i in a , range : ( 1 .. 2 ) offset : 1"],
  'cycle' => ["'a' , 'b'", "'g' : a , 2"],
  'render' => ["'s'", "'s' , k : a , l : 'b'", "'s' for a as b , k : 1", "'s' with a . b"],
  'include' => ["'s' , k : a", "a for b as c k : 1"],
  'ifchanged' => [""], 'comment' => [""], 'raw' => [""], 'doc' => [""], 'break' => [""], 'continue' => [""], '#' => ["a"]
}

# Each is put at each place of each markup.
TOKENS = "a 1 -1 'x' nil , : | . .. [ ] ( ) == = and or contains in reversed limit with as - ? ! ' & é".split

VALUES = <<'END'.split + ["a\u00a0b", "( 1 .. 2 )", "(1 ..2)", "a . b", "a [ 0 ]", "a b", "- 1", "a -", "a - b", "(1..2", "a\tb", "a\u000bb", "a | f", "a == b", "a,b", "{{ a }}"]
a a-b a_b a? a?? a.b? _a a1 1a a.1 a.b.c a..b .a a. a[0] a[-1] a['b'] a["b"].c a[b.c][0] a[] a[ a] a[[0]] a['b' a[(1..2)]
[a] ['a'] ['a'].b self self['a'] self.a [ 0 1 -1 --1 1.5 1. .5 1.2.3 1.5.a 1e3 1,000 +1 'a' "a" 'a"b' "a'b" 'a'b 'a''b' 'a ""
true false nil null blank empty true.a nil[0] contains a.contains contains.a containsx and or in not (1..2) (1..a) (a..b) (1...2)
(1..) (..2) (1.. 1..2) (1) () ((1..2)..3) (1..(2..3)) ((a..2)..3) (true..2) (1..false) (nil..2) ('a'..2) (1.5..2) (a.b..c[0])
(1..2).a (1..2)[0] a[(true..2)] a['[(true..1)]'] a['[[(true..1)]'] a["(true..1)"] {} {a} %w a% $a @a a! !a a= ~ ^ ; ` \ “a” é
END

BLOCKS = { 'if' => 'a', 'unless' => 'a', 'case' => 'a', 'for' => 'i in a', 'tablerow' => 'i in a', 'capture' => 'x', 'ifchanged' => '',
           'comment' => '', 'raw' => '', 'doc' => '' }

# A tag in a template that is valid around it.
def around(name, markup)
  tag = name.empty? ? "{{ #{markup} }}" : "{% #{name} #{markup} %}"
  case name
  when 'elsif' then "{% if a %}#{tag}{% endif %}"
  when 'when' then "{% case a %}#{tag}{% endcase %}"
  else BLOCKS.key?(name) ? "#{tag}{% end#{name} %}" : tag
  end
end

# The same as lines of `liquid`.
def lines(name, markup)
  line = "#{name} #{markup}"
  body = case name
         when 'elsif' then "if a\n#{line}\nendif"
         when 'when' then "case a\n#{line}\nendcase"
         else BLOCKS.key?(name) ? "#{line}\nend#{name}" : line
         end
  "{% liquid\n#{body}\n%}"
end

found = []

# Each token at each place: put in, in the place of another one, left out, and twice.
MARKUPS.each do |name, markups|
  markups.each_with_index do |markup, index|
    tokens = markup.split
    found << around(name, markup) << around(name, tokens.join)
    found << lines(name, markup) unless name.empty?
    (0..tokens.size).each do |place|
      # Of two like tokens, every second place has one of them.
      TOKENS.each_with_index do |token, number|
        found << around(name, tokens.dup.insert(place, token).join(' ')) if index == 0 || (number + place).even?
        next if place == tokens.size || (number + place).odd?
        found << around(name, tokens.dup.tap { |list| list[place] = token }.join(' '))
      end
      next if place == tokens.size
      found << around(name, tokens.dup.tap { |list| list.delete_at(place) }.join(' '))
      found << around(name, tokens.dup.insert(place, tokens[place]).join(' '))
      found << around(name, tokens.dup.tap { |list| list[place], list[place - 1] = list[place - 1], list[place] }.join(' '))
      found << around(name, tokens[0...place].join(' '))
    end
  end
end

# Each value where a value can stand.
VALUES.each do |value|
  found << "{{ #{value} }}" << "{{a|f:#{value}}}" << "{{ a | f: k: #{value} }}" << "{{ a[#{value}] }}" << "{% assign x = #{value} %}"
  found << "{% if #{value} %}{% endif %}" << "{% if a == #{value} and b %}{% endif %}" << "{% case #{value} %}{% endcase %}"
  found << "{% case a %}{% when #{value}, 1 %}{% endcase %}" << "{% for i in #{value} %}{% endfor %}"
  found << "{% for i in a limit: #{value} %}{% endfor %}" << "{% tablerow i in a cols:#{value} %}{% endtablerow %}"
  found << "{% cycle #{value}, 1 %}" << "{% include #{value} %}" << "{% render 's', k: #{value} %}" << "{% liquid\necho #{value}\n%}"
end

# What stands in the place of a variable.
['a.b', 'a[0]', "'a'", '1', 'a?', 'a b', '', 'a,', '-a', '(a)', '(a', 'a)', '((a', 'a b.c', '"x" a', 'a | b', '_', 'contains', "a\u0000", 'é'].each do |target|
  ['=', '==', '+=', ':', '', '= b ='].each { |sign| found << "{% assign #{target} #{sign} 1 %}" }
  found << "{% assign #{target}=%}" << "{% for #{target} in a %}{% endfor %}" << "{% render 's' as #{target} %}" << "{% render #{target} %}"
  %w[capture increment decrement].each { |name| found << around(name, target) }
end

# Each tag in each block, with the end of the block and without.
inner = BLOCKS.keys + BLOCKS.keys.map { |name| "end#{name}" } + %w[else elsif when end endliquid foo break # liquid]
(BLOCKS.keys + [nil]).each do |outer|
  inner.each do |name|
    markup = BLOCKS[name] || { 'elsif' => 'b', 'when' => '1' }[name] || ''
    open = outer && "{% #{outer} #{BLOCKS[outer]} %}"
    found << "#{open}x{% #{name} #{markup} %}{% end#{outer} %}" if outer
    found << "#{open}{% #{name} #{markup} %}" << "#{open}{% #{name} x y %}{% #{name} #{markup} %}#{"{% end#{outer} %}" if outer}"
    found << "{% liquid\n#{"#{outer} #{BLOCKS[outer]}\n" if outer}#{name} #{markup}\n#{"end#{outer} x" if outer}\n%}"
    found << "#{open}{% liquid\n#{name} #{markup}\n%}#{"{% end#{outer} %}" if outer}" << "{% liquid liquid #{name} #{markup} %}"
  end
end

# What is not read, and how it ends.
parts = ['', 'x', '{{ a }}', '{{ a', '{{ a }', '{{ a {%', '{% x', '{% %}', '{%', '%}', '}}', '{{', '{{ {{ }}', '{% if %}', '{% raw %}', '{% endraw %}',
         '{% comment %}', '{% endcomment %}', '{% doc %}', '{% enddoc %}', "{% liquid\ncomment\n%}", '{% # a %}', '{%- raw -%}{% endraw %}',
         '{% comment %}{% endcomment %}', '{{ {% endraw %}', '{% {% endcomment %}', '{% end raw %}']
%w[raw comment doc ifchanged].each do |name|
  ["{% end#{name} %}", "{%- end#{name} -%}", "{%end#{name}%}", "{% end#{name} x y %}", "{% end#{name}x %}", "{%- - end#{name} %}", ''].each_with_index do |close, index|
    parts.each { |part| found << "{% #{name} %}#{part}#{close}" }
    parts.each { |part| found << "{%#{name}%}a#{part}b#{part}#{close}c" } if index.zero?
  end
end

# Braces, dashes and inline comments.
['{{}}', '{{ }}', '{{-}}', '{{--}}', '{{---}}', '{{- -}}', '{{ - }}', '{{-a-}}', '{{--a--}}', '{{ a -}}', '{{ a --}}', "{{ '}}' }}", "{{ '{{' }}", "{{ '%}' }}",
 "{{ '{%' }}", '{{ a } }}', '{{ a }', '{{ a', '{{', '{{{ a }}}', '{{ { }}', '{ { a } }', '{{ a }}}', '{%%}', '{% %}', '{%-%}', '{%--%}', '{%- -%}', '{%-if a-%}{%-endif-%}',
 '{% if a --%}{% endif %}', '{%if(a)%}{%endif%}', '{%assign a=1%}', '{% If a %}{% endIf %}', '{% if-a %}{% endif %}', "{% if\na\n%}{%\nendif\n%}", '{% 1 %}', '{% a', '{%', 'a %} b',
 "{% echo '%}' %}", '{% echo "{% %}', "{% # {% echo 'x' %} %}", "{%- # {% echo 'x' %} -%}", '{%#%}', '{% #a %}', "{% # a\n# b %}", "{% # a\nb %}", "{% # a\n\n  # b\n %}", "{% # a\r\nb %}",
 "{% # a\n\u000b#b %}", "{% liquid %}", "{% liquid\n\n%}", "{% liquid\n# a\nb\n%}", "{% liquid\n  if a\n echo b\n  endif\n%}", "{% liquid if a\nendif %}", "{% liquid\necho 'a\nb'\n%}",
 "{% liquid\r\necho a\r\n%}", "{% liquid\n- a\n%}", "{% liquid\necho a\nliquid echo b\nliquid liquid echo c\n%}", "{%liquid\nliquid\n%}", "{% liquid\ncomment\nraw\nendcomment\n%}",
 "{% liquid\ncomment x\n if\ncomment\nendcomment\nendcomment y\necho a\n%}", "{% for i in a %}{% else %}{% else %}", "{% for i in a %}{% else %}{% else %}{% endfor %}",
 "{% case a %}{% else %}{% when 1 %}{% else %}{% endcase %}", "{% case a %}x{% when 1 %}{% else x %}{% endcase %}", "{% if a %}{% else if b %}{% else %}{% elsif c %}{% endif %}"].each { |text| found << text }

# The deepest nesting.
[99, 100, 101].each do |depth|
  found << '{% if a %}' * depth + '{% endif %}' * depth
  found << '{% if a %}' * (depth - 1) + '{% comment %}{% endcomment %}' + '{% endif %}' * (depth - 1)
  found << '{% if a %}' * (depth - 1) + '{% raw %}{% endraw %}{% break %}' + '{% endif %}' * (depth - 1)
  found << '{% if a %}' * (depth - 1) + "{% liquid\nif a\nendif\n%}" + '{% endif %}' * (depth - 1)
end

puts JSON.generate(['Liquid', Liquid::VERSION])
found.uniq.each do |template|
  next if template.match?(/render\s+block\b/)
  puts JSON.generate([template, refusal(template, :strict2) || 0, refusal(template, :strict) ? 1 : 0, refusal(template, :lax) ? 1 : 0])
end
