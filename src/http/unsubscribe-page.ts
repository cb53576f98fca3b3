// The page behind an unsubscribe link, in the reader's language out of a few: a question and one button, no script, nothing
// loaded. What it shows of the link is the address, which is escaped.
import { createHash } from "node:crypto";

export type PageState = "ask" | "done" | "failed";

interface Texts {
  /** Heading and title of the question. */
  title: string;
  /** The question; the address follows. */
  ask: string;
  button: string;
  done: string;
  /** The address follows. */
  doneFor: string;
  failed: string;
  again: string;
}

const texts = {
  en: {
    title: "Unsubscribe",
    ask: "Stop all mail of this sender to this address?",
    button: "Unsubscribe",
    done: "You are unsubscribed",
    doneFor: "This sender sends no more mail to this address.",
    failed: "You are not unsubscribed yet",
    again: "The service cannot save your choice right now. Please try again in a few minutes.",
  },
  de: {
    title: "Abmelden",
    ask: "Alle E-Mails dieses Absenders an diese Adresse beenden?",
    button: "Abmelden",
    done: "Sie sind abgemeldet",
    doneFor: "Dieser Absender schickt keine E-Mails mehr an diese Adresse.",
    failed: "Sie sind noch nicht abgemeldet",
    again:
      "Der Dienst kann Ihre Wahl gerade nicht speichern. Bitte versuchen Sie es in einigen Minuten noch einmal.",
  },
  fr: {
    title: "Se désabonner",
    ask: "Ne plus recevoir d'e-mails de cet expéditeur à cette adresse ?",
    button: "Se désabonner",
    done: "Vous êtes désabonné",
    doneFor: "Cet expéditeur n'enverra plus d'e-mails à cette adresse.",
    failed: "Vous n'êtes pas encore désabonné",
    again:
      "Le service ne peut pas enregistrer votre choix pour le moment. Veuillez réessayer dans quelques minutes.",
  },
  es: {
    title: "Darse de baja",
    ask: "¿Dejar de recibir correos de este remitente en esta dirección?",
    button: "Darse de baja",
    done: "Se ha dado de baja",
    doneFor: "Este remitente no enviará más correos a esta dirección.",
    failed: "Todavía no se ha dado de baja",
    again: "El servicio no puede guardar su elección en este momento. Inténtelo de nuevo en unos minutos.",
  },
  it: {
    title: "Annulla l'iscrizione",
    ask: "Non ricevere più e-mail da questo mittente a questo indirizzo?",
    button: "Annulla l'iscrizione",
    done: "Iscrizione annullata",
    doneFor: "Questo mittente non invierà più e-mail a questo indirizzo.",
    failed: "L'iscrizione non è ancora annullata",
    again: "Il servizio non può salvare la scelta in questo momento. Riprovi tra qualche minuto.",
  },
  nl: {
    title: "Afmelden",
    ask: "Geen e-mail van deze afzender meer ontvangen op dit adres?",
    button: "Afmelden",
    done: "U bent afgemeld",
    doneFor: "Deze afzender stuurt geen e-mail meer naar dit adres.",
    failed: "U bent nog niet afgemeld",
    again: "De dienst kan uw keuze nu niet opslaan. Probeer het over enkele minuten opnieuw.",
  },
  pt: {
    title: "Cancelar subscrição",
    ask: "Deixar de receber e-mails deste remetente neste endereço?",
    button: "Cancelar subscrição",
    done: "A subscrição foi cancelada",
    doneFor: "Este remetente não enviará mais e-mails para este endereço.",
    failed: "A subscrição ainda não foi cancelada",
    again:
      "O serviço não consegue guardar a sua escolha neste momento. Tente novamente dentro de alguns minutos.",
  },
  pl: {
    title: "Rezygnacja z wiadomości",
    ask: "Nie otrzymywać więcej wiadomości od tego nadawcy na ten adres?",
    button: "Zrezygnuj",
    done: "Zrezygnowano z wiadomości",
    doneFor: "Ten nadawca nie będzie już wysyłać wiadomości na ten adres.",
    failed: "Rezygnacja nie została jeszcze zapisana",
    again: "Usługa nie może teraz zapisać wyboru. Proszę spróbować ponownie za kilka minut.",
  },
  ja: {
    title: "配信停止",
    ask: "この送信者からこのアドレスへのメールをすべて停止しますか？",
    button: "配信を停止する",
    done: "配信を停止しました",
    doneFor: "この送信者からこのアドレスへメールが送られることはありません。",
    failed: "配信はまだ停止されていません",
    again: "現在、設定を保存できません。数分後にもう一度お試しください。",
  },
} satisfies Record<string, Texts>;

export type Language = keyof typeof texts;
export const languages = Object.keys(texts) as Language[];

const style =
  "body{font:1.125rem/1.5 system-ui,sans-serif;max-width:32rem;margin:3rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}" +
  "h1{font-size:1.5rem}strong{overflow-wrap:anywhere}" +
  "button{font:inherit;padding:.6rem 1.2rem;border:2px solid #1a1a1a;border-radius:.3rem;background:#1a1a1a;color:#fff;cursor:pointer}" +
  "button:focus-visible{outline:3px solid #0b57d0;outline-offset:2px}" +
  "@media(prefers-color-scheme:dark){body{color:#f2f2f2;background:#1a1a1a}button{background:#f2f2f2;color:#1a1a1a;border-color:#f2f2f2}}";
const styleHash = createHash("sha256").update(style).digest("base64");

/** What its browser may do: show it, and send its form to where it came from (CSP Level 3). */
export const pagePolicy = `default-src 'none'; style-src 'sha256-${styleHash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;

export function unsubscribePage(state: PageState, language: Language, email: string): string {
  const { title, ask, button, done, doneFor, failed, again }: Texts = texts[language];
  const heading = { ask: title, done, failed }[state];
  const words = { ask, done: doneFor, failed: again }[state];
  const form = `<form method="post"><input type="hidden" name="unsubscribe" value="yes"><button type="submit">${button}</button></form>`;
  return (
    `<!doctype html>\n<html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">` +
    `<meta name="robots" content="noindex,nofollow"><title>${heading}</title><style>${style}</style></head>` +
    `<body><main><h1>${heading}</h1><p>${words}</p><p><strong><bdi>${escaped(email)}</bdi></strong></p>` +
    `${state === "done" ? "" : form}</main></body></html>\n`
  );
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** The first of the reader's languages that there is (RFC 9110 §12.5.4), by weight; English where there is none. */
export function languageOf(acceptLanguage: string | undefined): Language {
  const wishes = (acceptLanguage ?? "")
    .slice(0, 1_000)
    .split(",")
    .map((part) => {
      const [tag = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
      const q = parameters.find((parameter) => parameter.startsWith("q="));
      const weight = q === undefined ? 1 : Number(q.slice(2));
      return { language: tag.split("-")[0] ?? "", weight: weight > 0 && weight <= 1 ? weight : 0 };
    })
    .filter(({ weight }) => weight > 0)
    .toSorted((a, b) => b.weight - a.weight);
  for (const { language } of wishes) {
    const found = languages.find((known) => known === language);
    if (found) return found;
  }
  return "en";
}
