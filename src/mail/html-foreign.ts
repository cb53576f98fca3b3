// Whether a tag of an HTML document stands in SVG or MathML, where `<![CDATA[` is text and `<style>` has markup (WHATWG
// HTML §13.2.6.5). Only the elements that decide this are kept, and not deeper than any picture or formula goes.

/** `html`: a point of integration, whose content is HTML again. */
interface Open {
  name: string;
  kind: "svg" | "math" | "html";
}

const deepest = 64;
const svgPoints = new Set(["foreignobject", "desc", "title"]);
const mathPoints = new Set(["mi", "mo", "mn", "ms", "mtext", "annotation-xml"]);
/** Start tags that end foreign content; `font` does with an attribute of its own. */
const html = new Set(
  (
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta " +
    "nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
  ).split(" "),
);
const fontAttribute = /\s(?:color|face|size)[\s=/>]/i;

export class OpenForeign {
  readonly #open: Open[] = [];
  /** False once they went too deep: where a tag stands is not known any more. */
  known = true;

  get inside(): boolean {
    const within = this.#open.at(-1);
    return within !== undefined && within.kind !== "html";
  }

  /** At a point of integration or in HTML within it: only the tree of elements would tell which. */
  get atPoint(): boolean {
    return this.#open.at(-1)?.kind === "html";
  }

  /** Takes note of a start tag, as it is written; true: it is one of foreign content. */
  start(name: string, tag: () => string, selfClosing: boolean): boolean {
    if (this.inside && (html.has(name) || (name === "font" && fontAttribute.test(tag())))) this.#leave();
    const kind = this.#open.at(-1)?.kind ?? "html";
    const root = name === "svg" || name === "math";
    if (selfClosing) return kind !== "html" || root;
    if (kind === "html") {
      if (root) this.#push({ name, kind: name });
      return root;
    }
    if ((kind === "svg" ? svgPoints : mathPoints).has(name)) this.#push({ name, kind: "html" });
    else if (root) this.#push({ name, kind });
    return true;
  }

  end(name: string): void {
    if (name === "p" || name === "br") this.#leave();
    const at = this.#open.findLastIndex((open) => open.name === name);
    if (at >= 0) this.#open.length = at;
  }

  #push(open: Open): void {
    if (this.#open.length < deepest) this.#open.push(open);
    else this.known = false;
  }

  #leave(): void {
    while (this.inside) this.#open.pop();
  }
}
