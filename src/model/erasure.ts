// What is removed of one person, and what is left: the answer to a request for erasure.

export interface Forgotten {
  /** Records of the address as a recipient; `canceled` of them were still to be sent. */
  recipients: number;
  canceled: number;
  /** Messages to no other recipient: removed whole. */
  messages: number;
  /** Contents of messages, those with other recipients among them. */
  content: number;
  events: number;
  inbox: number;
  /** Being sent now, and left: ask again. */
  underWay: number;
  /** Messages that other recipients still wait for: their content, which may show the address, stays as long as any other's. */
  contentKept: string[];
}
