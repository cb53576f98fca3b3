// The live screen of `svc top`: keys, resizing and redrawing by ink. What is drawn is top-screen.ts's. Loaded by the
// command alone, once there is a terminal.
import { Box, render, Text, useInput, useWindowSize } from "ink";
import { createElement, useState, type ReactElement } from "react";
import type { Glyphs } from "../glyphs.ts";
import { screenOf, views, type Line, type ScreenState, type View } from "./top-screen.ts";

type Shown = Pick<ScreenState, "activity" | "fault">;

export interface TopView {
  /** Draws what is known now, unless the screen is paused. */
  show(now: Shown): void;
  /** Resolves when the person leaves: by q, or by Ctrl-C. The terminal is as it was before. */
  readonly left: Promise<"quit" | "interrupt">;
  /** Leaves as a signal asks. */
  leave(): void;
}

export interface TopOptions {
  colour: boolean;
  glyphs: Glyphs;
  first: Shown;
}

type Leave = (how: "quit" | "interrupt") => void;

export function openTop({ colour, glyphs, first }: TopOptions): TopView {
  let how: "quit" | "interrupt" = "quit";
  let now = first;
  let changed = (): void => undefined;
  const leave: Leave = (by) => {
    how = by;
    instance.unmount();
  };
  const app = createElement(Top, {
    colour,
    glyphs,
    leave,
    now: () => now,
    onChange: (run: () => void) => (changed = run),
  });
  const instance = render(app, {
    exitOnCtrlC: false,
    patchConsole: false,
    alternateScreen: true,
    interactive: true,
    incrementalRendering: true,
    maxFps: 10,
  });
  return {
    show(next) {
      now = next;
      changed();
    },
    left: instance.waitUntilExit().then(() => how),
    leave: () => leave("interrupt"),
  };
}

interface TopProps {
  colour: boolean;
  glyphs: Glyphs;
  leave: Leave;
  now: () => Shown;
  onChange: (run: () => void) => void;
}

function Top({ colour, glyphs, leave, now, onChange }: TopProps): ReactElement {
  const { columns, rows } = useWindowSize();
  const [, redraw] = useState(0);
  const [view, setView] = useState<View>("overview");
  const [help, setHelp] = useState(false);
  /** What the screen shows while it is paused. */
  const [held, setHeld] = useState<Shown | null>(null);
  onChange(() => redraw((count) => count + 1));

  useInput((input, key) => {
    if (key.ctrl && input === "c") return leave("interrupt");
    if (key.tab) {
      const step = key.shift ? views.length - 1 : 1;
      show((before) => views[(views.indexOf(before) + step) % views.length] ?? before);
    }
    for (const pressed of input) press(pressed); // a slow line brings several at once
  });
  const press = (pressed: string): void => {
    if (pressed === "q") return leave("quit");
    if (pressed === "?") return setHelp((shown) => !shown);
    if (pressed === "p") return setHeld((before) => (before === null ? now() : null));
    const chosen = views[Number(pressed) - 1];
    return chosen === undefined ? undefined : show(() => chosen);
  };
  const show = (next: (before: View) => View): void => {
    setHelp(false);
    setView(next);
  };

  const { activity, fault } = held ?? now();
  const state = { activity, fault, view, help, paused: held !== null };
  const lines = screenOf(state, { columns, rows: rows - 1 }, glyphs);
  return createElement(
    Box,
    { flexDirection: "column" },
    lines.map((line, index) =>
      createElement(Text, { key: index, wrap: "truncate", ...styleOf(line, colour) }, line.text || " "),
    ),
  );
}

function styleOf({ tone }: Line, colour: boolean): { bold?: true; dimColor?: true; color?: string } {
  if (!colour || tone === undefined) return {};
  return tone === "bold" ? { bold: true } : tone === "dim" ? { dimColor: true } : { color: "yellow" };
}
