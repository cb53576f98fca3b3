# Receives webhooks, as a Rack application: put `require "./webhook"` and `run Webhook` into config.ru. By itself,
# to try it: PORT=8080 ruby webhook.rb. Before it stands a proxy that has the certificate (webhooks are sent by HTTPS only).
require "json"
require "openssl"

module Webhook
  SECRET = ENV.fetch("SVC_WEBHOOK_SECRET") # the 64 characters as they are: they are not encoded
  TOLERANCE = 5 * 60
  KEPT = 25 * 60 * 60
  MOST_BYTES = 1_000_000
  @seen = {} # event_id => when; where there are several processes: a table with a unique key
  @lock = Mutex.new

  def self.call(env)
    body = env["rack.input"].read(MOST_BYTES + 1).to_s
    return [413, {}, []] if body.bytesize > MOST_BYTES
    return [401, {}, []] unless env["REQUEST_METHOD"] == "POST" && genuine?(env, body)

    event = JSON.parse(body)
    Thread.new { handle(event) } if new?(event["event_id"]) # first the answer, then the work: there are 10 seconds for it
    [202, {}, []]
  end

  # True for a body, as it came, that the holder of the secret signed within the last five minutes.
  def self.genuine?(env, body)
    timestamp = env["HTTP_X_SVC_TIMESTAMP"].to_s
    return false unless timestamp.match?(/\A\d+\z/) && (Time.now.to_i - timestamp.to_i).abs <= TOLERANCE

    expected = "sha256=" + OpenSSL::HMAC.hexdigest("SHA256", SECRET, "#{timestamp}.".b + body.b)
    # For a while after the secret was rotated, the second header is signed with the one before.
    [env["HTTP_X_SVC_SIGNATURE"], env["HTTP_X_SVC_SIGNATURE_PREVIOUS"]].any? do |given|
      given.to_s.bytesize == expected.bytesize && OpenSSL.fixed_length_secure_compare(given, expected)
    end
  end

  # False where the event was here before: each may come more than once.
  def self.new?(event_id)
    now = Time.now
    @lock.synchronize do
      @seen.shift while @seen.any? && now - @seen.first.last > KEPT
      return false if @seen.key?(event_id)

      @seen[event_id] = now
      true
    end
  end

  def self.handle(event)
    puts [event["event_id"], event["event"], event.dig("data", "to")].join(" ")
  end
end

# In place of a Rack server, which is a gem: just enough HTTP to try it.
if __FILE__ == $PROGRAM_NAME
  require "socket"
  require "stringio"
  $stdout.sync = true
  server = TCPServer.new("127.0.0.1", Integer(ENV.fetch("PORT", "8080")))
  loop do
    Thread.new(server.accept) do |socket|
      env = { "REQUEST_METHOD" => socket.gets(1000).to_s.split.first }
      while (line = socket.gets(8000)&.chomp) && line != ""
        name, value = line.split(":", 2)
        env["HTTP_#{name.upcase.tr("-", "_")}"] = value.to_s.strip
      end
      length = [env["HTTP_CONTENT_LENGTH"].to_i, Webhook::MOST_BYTES + 1].min
      env["rack.input"] = StringIO.new(socket.read(length).to_s)
      status, = Webhook.call(env)
      socket.write("HTTP/1.1 #{status} \r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    ensure
      socket.close
    end
  end
end
