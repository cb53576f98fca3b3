// The streaming look at mail that comes in by SMTP.
export const maxMessageBytes = 26_214_400;
/** Larger than 26,214,400 bytes. */
export class MailTooLarge extends Error {
  constructor() {
    super("the message is larger than 26,214,400 bytes");
    this.name = "MailTooLarge";
  }
}
export interface IntakeSummary {
  /** Header section and body, as they came. */
  sizeBytes: number;
  bodyBytes: number;
  /** Octets above 127 anywhere. */
  eightBit: boolean;
  /** Octets above 127 in the header section. */
  eightBitHeader: boolean;
  bodyHash: Buffer;
}
export interface IntakeStep {
  /** The header section with its empty line: once, in the step that completes it. */
  section: Buffer | null;
  /** Body bytes of this step; may be empty. */
  body: Buffer;
}
export class MailIntake {
  /** Takes the next DATA bytes, dot-unstuffed. Throws MailSyntaxError or MailTooLarge. */
  push(chunk: Buffer): IntakeStep {
    throw new Error(String(chunk.length));
  }
  /** Ends the data: what was held back, and the summary. Throws MailSyntaxError. */
  end(): IntakeStep & { summary: IntakeSummary } {
    throw new Error("end");
  }
}
