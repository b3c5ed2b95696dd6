// A WebAssembly module: one function from a question to its answer. The page has an instance of the layouts' module for what is quick; workers
// have others for what may take seconds, and are ended when their answer is no longer wanted.
const bytesOf = (base64) => {
  // The browser's own function is an order of magnitude faster than a loop, where it exists.
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const letters = atob(base64);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) bytes[i] = letters.charCodeAt(i);
  return bytes;
};

// A module from its text: gzip in base 64.
const compile = (base64) => {
  const stream = new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compileStreaming(new Response(stream, { headers: { "Content-Type": "application/wasm" } }));
};

const instantiate = (module) => {
  const { exports } = new WebAssembly.Instance(module, {});
  return (question) => {
    const text = new TextEncoder().encode(JSON.stringify(question));
    const at = exports.question(text.length) >>> 0;
    new Uint8Array(exports.memory.buffer, at, text.length).set(text);
    const length = exports.answer() >>> 0;
    const answer = new Uint8Array(exports.memory.buffer, exports.answer_at() >>> 0, length);
    return JSON.parse(new TextDecoder().decode(answer));
  };
};

// An instance that traps is not asked again: the next question gets a new one.
const engine = (module) => {
  let ask = null;
  return (question) => {
    try {
      ask ??= instantiate(module);
      return ask(question);
    } catch (error) {
      ask = null;
      return { error: { code: "trap", shown: `error: the module stopped: ${error.message}` } };
    }
  };
};
