// Generated dashboard files: name and content.
import { synchronization } from './synchronization';
import { device } from './device';
import { fleet } from './fleet';
import { build } from './frame';
import { node } from './node';

export const files = (): Map<string, string> =>
  new Map([fleet, node, synchronization, device].map((frame) => [`${frame.uid}.json`, `${JSON.stringify(build(frame), null, 2)}\n`]));
