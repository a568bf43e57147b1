# Asks Liquid itself about the mends of `lamplighter theme fix`, and writes mends.jsonl and meant.jsonl.
#
#   cargo run -p theme-scripts --example mends -- tests/liquid/strict/verdicts.jsonl > /tmp/mends.jsonl
#   ruby tests/liquid/strict/mends.rb liquid /tmp/mends.jsonl > tests/liquid/strict/mends.jsonl
#   cargo run -p theme-scripts --example mends -- tests/liquid/strict/verdicts.jsonl --as-meant > /tmp/meant.jsonl
#   ruby tests/liquid/strict/mends.rb liquid /tmp/meant.jsonl --as-meant > tests/liquid/strict/meant.jsonl
#   cargo test -p theme every_mend
#
# `liquid` is the folder of generate.rb. Each line is an array: the old template, the mended one, and the verdict. It is 0 if `strict2` accepts
# the mended template and it shows what the old one shows with the tolerant parser (`lax`); 1 if it is accepted and the tolerant parser refuses
# the old one, so that it never showed anything; with `--as-meant`, 2 if it is accepted and shows something else; and otherwise what is wrong.
# The first line is the version. meant.jsonl leaves out the mends that mends.jsonl has.

require_relative 'shops'

as_meant = ARGV.delete('--as-meant')
puts JSON.generate(['Liquid', Liquid::VERSION])
File.foreach(ARGV.fetch(1), chomp: true) do |line|
  old, new = JSON.parse(line)
  before_body, after_body = [old, new].map { |template| with_bodies(template) }
  verdict =
    begin
      after = shown(after_body, :strict2)
      begin
        before = shown(before_body, :lax)
        if before != after && as_meant
          2
        elsif before != after
          "it shows #{after} and not #{before}"
        elsif !as_meant && before != shown(after_body, :lax)
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
