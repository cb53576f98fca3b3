// The send request of POST /v1/messages, after its shape was checked.
export interface Party {
  email: string;
  name: string | null;
}
export interface AttachmentRequest {
  filename: string;
  content: string; // base64
  content_type: string | null;
  content_id: string | null;
  disposition: "attachment" | "inline" | null;
}
export interface MessageRequest {
  from: Party;
  reply_to: Party[];
  to: Party[];
  cc: Party[];
  bcc: Party[];
  subject: string;
  html: string | null;
  text: string | null;
}
