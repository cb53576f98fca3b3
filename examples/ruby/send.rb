# Sends a message: ruby send.rb FROM TO
require_relative "svc"

begin
  message = Svc.request("POST", "/v1/messages", {
    from: ARGV[0],
    to: [ARGV[1]],
    subject: "Your order",
    text: "It is on its way.",
    html: "<p>It is on its way.</p>",
    tags: ["order"]
  })
  puts message["id"]
rescue Svc::Error => error
  warn error.message
  error.errors.each { |problem| warn "  #{problem["field"]}: #{problem["issue"]}" }
  exit 1
end
