// generate FOLDER: writes the dashboards to FOLDER.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { files } from './all';

const [folder] = process.argv.slice(2);
if (!folder) throw new Error('generate FOLDER');
mkdirSync(folder, { recursive: true });
for (const [name, text] of files()) writeFileSync(join(folder, name), text);
