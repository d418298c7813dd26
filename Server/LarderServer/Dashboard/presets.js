// Single faults with a switch each.

const inSeconds = (seconds) => ({ seconds: Math.round(seconds) });
const atLeastOne = (number) => Math.max(1, Math.round(number));

/** `amount` is a default number and its unit; the number can be changed before the fault is switched on. */
const presets = [
  {
    id: "lose-reply",
    name: "Lose the reply",
    about: "processed and committed, then the reply is lost (POST if no method is selected)",
    method: "POST",
    action: () => ({ type: "loseReply" }),
  },
  {
    id: "unavailable",
    name: "503 with Retry-After",
    about: "the server is busy",
    amount: [2, "s"],
    action: (seconds) => ({ type: "respond", status: 503, retryAfter: inSeconds(seconds) }),
  },
  {
    id: "limited",
    name: "429 with Retry-After",
    about: "too many requests",
    amount: [5, "s"],
    action: (seconds) => ({ type: "respond", status: 429, retryAfter: inSeconds(seconds) }),
  },
  {
    id: "slow",
    name: "Latency",
    about: "before the first byte, on the world's clock",
    amount: [1.5, "s"],
    action: (seconds) => ({ type: "latency", firstByte: seconds }),
  },
  {
    id: "narrow",
    name: "Bandwidth",
    about: "shared by all connections of a device",
    amount: [20, "kB/s"],
    action: (rate) => ({ type: "bandwidth", downBytesPerSecond: atLeastOne(rate * 1000) }),
  },
  {
    id: "stalls",
    name: "Packet loss",
    about: "stalls without missing bytes",
    action: () => ({ type: "loss", lossInBad: 0.5 }),
  },
  {
    id: "broken",
    name: "Reset",
    about: "the connection is reset before the request is processed",
    action: () => ({ type: "reset" }),
  },
  {
    id: "silent",
    name: "Never answer",
    about: "the client must time out",
    action: () => ({ type: "never" }),
  },
  {
    id: "truncated",
    name: "Truncate",
    about: "less than Content-Length",
    amount: [100, "bytes"],
    action: (byte) => ({ type: "truncate", byte: Math.round(byte) }),
  },
  {
    id: "corrupt",
    name: "Corrupt",
    about: "flipped bits, correct length",
    amount: [1, "bytes"],
    action: (bytes) => ({ type: "corrupt", bytes: atLeastOne(bytes) }),
  },
  {
    id: "malformed",
    name: "Malformed JSON",
    about: "an invalid JSON body",
    action: () => ({ type: "malformedJSON" }),
  },
  {
    id: "lagging",
    name: "Lagging replica",
    about: "reads see an earlier state",
    amount: [30, "s"],
    action: (seconds) => ({ type: "lag", seconds }),
  },
  {
    id: "expired",
    name: "Expired tokens",
    about: "401, token-expired",
    action: () => ({ type: "expireToken" }),
  },
  {
    id: "validators",
    name: "Changing ETags",
    about: "a new ETag for the same content",
    action: () => ({ type: "validators", mode: "changing" }),
  },
  {
    id: "twice",
    name: "Duplicate",
    about: "processed twice; the second reply is sent",
    action: () => ({ type: "duplicate" }),
  },
  {
    id: "lossy-live",
    name: "Lose live events",
    about: "half of the frames of channels opened from now on",
    action: () => ({ type: "live", lose: 0.5 }),
  },
  {
    id: "tls-expired",
    name: "Expired certificate",
    about: "of new connections over https, also those of this page",
    stage: "handshake",
    action: () => ({ type: "certificate", fault: "expired" }),
  },
  {
    id: "tls-stalled",
    name: "Stalled handshake",
    about: "new connections over https get no answer",
    stage: "handshake",
    action: () => ({ type: "never" }),
  },
];
