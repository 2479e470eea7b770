/**
 * Ids of what one process does in a run. A run that is resumed does some things again: they have other ids then, so that
 * what was paid for the first time pays for nothing else.
 */

/** The id in the process of that number, from 0. */
export const inEpoch = (id: string, epoch: number): string => (epoch === 0 ? id : `${id}/epoch-${epoch}`)
