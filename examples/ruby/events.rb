# Prints the events, oldest first, one a line: ruby events.rb [--follow] [CURSOR]
# The cursor goes to stderr: keep it, and the next run begins behind what this one has printed.
require_relative "svc"

$stdout.sync = true
follow = !ARGV.delete("--follow").nil?
cursor = ARGV.first

loop do
  query = URI.encode_www_form({ limit: 1000, cursor: cursor }.compact)
  page = Svc.request("GET", "/v1/events?#{query}")
  page["data"].each { |event| puts JSON.generate(event) }
  cursor = page["next_cursor"] || cursor # the last page has one too: what happens later comes behind it
  next if page["has_more"]
  break unless follow

  sleep 2
end
warn cursor if cursor
