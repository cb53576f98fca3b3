// The large mailbox providers, once: by which MX hosts each is known, and how hard it is pushed from one sending address.
// None publishes its limits as a whole; these ask for less than a stranger with no reputation is refused. What a receiver
// says while mail is sent lowers them (queue/throttle.ts), and the operator has the last word (queue/shaping.ts).

export interface Provider {
  name: string;
  /** How the names of its MX hosts end. */
  hosts: readonly string[];
  connections: number;
  /** Messages that are begun in a second. */
  perSecond: number;
  messagesPerConnection: number;
}

export const providers: readonly Provider[] = [
  {
    name: "google",
    hosts: ["google.com", "googlemail.com", "psmtp.com"],
    connections: 10,
    perSecond: 50,
    messagesPerConnection: 100,
  },
  {
    name: "microsoft",
    hosts: ["outlook.com", "hotmail.com", "office365.us", "mx.microsoft"],
    connections: 8,
    perSecond: 30,
    messagesPerConnection: 100,
  },
  {
    name: "yahoo",
    hosts: ["yahoodns.net"],
    connections: 5,
    perSecond: 20,
    messagesPerConnection: 20, // its servers close the connection after about as many
  },
  {
    name: "apple",
    hosts: ["mail.icloud.com", "mail.me.com"],
    connections: 5,
    perSecond: 20,
    messagesPerConnection: 100,
  },
];
