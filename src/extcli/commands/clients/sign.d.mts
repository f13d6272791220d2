/** The time in Unix seconds: in tests that of the emulator, whose clock may have been moved. */
export function now(): Promise<number>;
/** A token that is valid for `seconds`. The secret is in base64. */
export function sign(secret: string, role: string, channel?: string, user?: string, seconds?: number): Promise<string>;
