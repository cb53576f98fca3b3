// Deletions that go in pieces, so that no transaction grows with what has gathered.

/** Rows that one transaction deletes at most. */
export const discardPiece = 5000;

/** Calls `piece`, which answers how many went, until fewer than a piece did. */
export async function inPieces(piece: () => Promise<number>, size = discardPiece): Promise<void> {
  while ((await piece()) === size) continue;
}
