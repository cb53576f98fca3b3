// The signed VERP return path.
export function returnPathLocal(secret: Uint8Array, messageKey: number, recipientKey: number): string {
  throw new Error(String(secret.length + messageKey + recipientKey));
}
export function readReturnPathLocal(secret: Uint8Array, local: string): { messageKey: number; recipientKey: number } | null {
  throw new Error(String(secret.length) + local);
}
