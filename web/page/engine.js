// The WebAssembly module: one function from a question to its answer. The page has an instance for what is quick; a worker has another for
// what may take seconds, and is ended when its answer is no longer wanted.
const bytesOf = async (base64) => {
  const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
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
