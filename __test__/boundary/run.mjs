// Runs one scenario: node run.mjs FILE NAME. Exit 0 and silence mean that it held.
const [file, name] = process.argv.slice(2);
const scenarios = await import(new URL(file, import.meta.url));
await scenarios[name]();
