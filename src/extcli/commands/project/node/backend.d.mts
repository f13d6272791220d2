export interface Round { question: string; options: string[]; open: boolean; winner?: string | null }
export function winnerOf(options: string[], votes: number[]): string | null;
/** Without an open round, the round is as it was, or empty. */
export function closeRound(): Promise<Partial<Round>>;
