// The certificate that every listener shows, and word of its change. Made by open.ts.
export interface Certificates {
  /** PEM texts of the certificate chain and its key as they are now. */
  current(): { key: string; cert: string };
  /** Whether that certificate names this host. */
  covers(name: string): boolean;
  /** Calls back after a reload brought another certificate; listeners swap their context without dropping a session. */
  onChange(listener: () => void): () => void;
  /** Reads the files again; the old certificate stays where the new one is unusable (the error is returned). */
  reload(): Promise<Error | null>;
}
