// The types of event that can happen, what each means and does not mean. Type, subscription check
// and documentation (docs/events.md) derive from this list.

export const eventCatalog = {
  "message.delivered": {
    bit: 1,
    meaning:
      "The receiving server accepted the message with a 250 after the final dot. It does not mean that a person saw it.",
  },
  "message.deferred": {
    bit: 2,
    meaning: "A temporary failure; the message is tried again. It does not mean that the address is bad.",
  },
  "message.bounced": {
    bit: 4,
    meaning:
      "Delivery ended without success. Only some bounces mean that the address is bad: see bounce_classification.",
  },
  "message.opened": { bit: 8, meaning: "The tracking pixel was loaded, by a person or by a machine." },
  "message.clicked": { bit: 16, meaning: "A tracked link was followed." },
  "message.complained": { bit: 32, meaning: "The recipient's provider reported the message as unwanted." },
  "message.unsubscribed": { bit: 64, meaning: "The recipient used the unsubscribe link or header." },
  "ip.blacklisted": { bit: 128, meaning: "A sending address was found on a DNS blocklist." },
  "ip.delisted": { bit: 256, meaning: "A sending address is no longer on a DNS blocklist." },
} as const;

export type EventType = keyof typeof eventCatalog;
export const eventTypes = Object.keys(eventCatalog) as EventType[];

export function isEventType(name: string): name is EventType {
  return Object.hasOwn(eventCatalog, name);
}
