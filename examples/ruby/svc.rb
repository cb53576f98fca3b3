# One request to the API, tried again as the API asks for. Ruby 2.7 or newer, no gems.
require "json"
require "net/http"
require "openssl"
require "securerandom"

module Svc
  MOST_RETRIES = 5
  BASE = Float(ENV.fetch("SVC_RETRY_BASE_MS", "1000")) / 1000
  CEILING = 30
  NO_ANSWER = [SystemCallError, SocketError, IOError, Timeout::Error, OpenSSL::SSL::SSLError, Net::ProtocolError,
               Net::HTTPBadResponse].freeze

  class Error < StandardError
    attr_reader :status, :code, :errors

    def initialize(status, text)
      problem = JSON.parse(text) rescue { "code" => "unknown", "detail" => text[0, 200] }
      @status, @code, @errors = status, problem["code"], problem.fetch("errors", [])
      super("#{status} #{code}: #{problem["detail"]} (#{problem["request_id"]})")
    end
  end

  # Answers the parsed body, nil for none; raises Svc::Error for a refusal. The Idempotency-Key is the same on every
  # try, so that what is sent twice is done once. Keep it with your job, and pass it in, to be safe across a restart too.
  def self.request(method, path, body = nil, idempotency_key: SecureRandom.uuid)
    uri = URI(ENV.fetch("SVC_BASE_URL") + path)
    asked = Net::HTTPGenericRequest.new(method, !body.nil?, true, uri)
    asked["Authorization"] = "Bearer #{ENV.fetch("SVC_API_KEY")}"
    asked["Accept"] = "application/json, application/problem+json" # one form for all errors
    asked["Idempotency-Key"] = idempotency_key unless method == "GET"
    asked.content_type = "application/json" if body
    asked.body = JSON.generate(body) if body

    (0..MOST_RETRIES).each do |retried|
      begin
        answer = connection(uri).start { |http| http.request(asked) }
        status = answer.code.to_i
        return answer.body.to_s.empty? ? nil : JSON.parse(answer.body) if status.between?(200, 299)
        raise Error.new(status, answer.body.to_s) if retried == MOST_RETRIES || !(status == 429 || status >= 500)
      rescue *NO_ANSWER
        raise if retried == MOST_RETRIES # nobody knows whether it was done, so it is tried again
        answer = nil
      end
      sleep(wait(answer, retried))
    end
  end

  # What the server asks for with 429 and 503; else a growing delay with jitter.
  def self.wait(answer, retried)
    seconds = answer && %w[429 503].include?(answer.code) ? answer["Retry-After"].to_i : 0
    seconds.positive? ? seconds : [CEILING, BASE * 2**retried * (1 + rand)].min
  end

  def self.connection(uri)
    http = Net::HTTP.new(uri.host, uri.port)
    http.use_ssl = uri.scheme == "https"
    http.ca_file = ENV["SVC_CA_FILE"] if ENV["SVC_CA_FILE"] # a server with a certificate of its own
    http.open_timeout = http.read_timeout = http.write_timeout = 30
    http.max_retries = 0 # tried again here, and nowhere else
    http
  end
  private_class_method :wait, :connection
end
