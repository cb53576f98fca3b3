// Sends a message: node send.mjs FROM TO
import { request, SvcError } from "./svc.mjs";

const [from, to] = process.argv.slice(2);
try {
  const message = await request("POST", "/v1/messages", {
    from,
    to: [to],
    subject: "Your order",
    text: "It is on its way.",
    html: "<p>It is on its way.</p>",
    tags: ["order"],
  });
  console.log(message.id);
} catch (error) {
  if (!(error instanceof SvcError)) throw error;
  console.error(error.message);
  for (const { field, issue } of error.errors) console.error(`  ${field}: ${issue}`);
  process.exitCode = 1;
}
