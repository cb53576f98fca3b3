// The local inbox: mail of test keys and of --dev, which is caught here instead of leaving the machine.

export interface InboxMail {
  key: number;
  messageId: string;
  to: string;
  from: string;
  subject: string;
  caughtAt: number;
  sizeBytes: number;
}
