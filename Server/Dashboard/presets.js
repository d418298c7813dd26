// Single faults with a switch each.

const inSeconds = (seconds) => ({ seconds: Math.round(seconds) });
const atLeastOne = (number) => Math.max(1, Math.round(number));

/** `amount` is a number and its unit, which can be changed before the fault is switched on. */
const presets = [
  {
    id: "lose-reply",
    name: "Lose the reply",
    about: "done and committed, and nobody is told (POST, where no method is chosen)",
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
    about: "stalls, and no byte is missing",
    action: () => ({ type: "loss", lossInBad: 0.5 }),
  },
  {
    id: "broken",
    name: "Reset",
    about: "the connection breaks before anything is done",
    action: () => ({ type: "reset" }),
  },
  {
    id: "silent",
    name: "Never answer",
    about: "until the client gives up",
    action: () => ({ type: "never" }),
  },
  {
    id: "truncated",
    name: "Truncate",
    about: "less of the body than was promised",
    amount: [100, "bytes"],
    action: (byte) => ({ type: "truncate", byte: Math.round(byte) }),
  },
  {
    id: "corrupt",
    name: "Corrupt",
    about: "flipped bits, right length",
    amount: [1, "bytes"],
    action: (bytes) => ({ type: "corrupt", bytes: atLeastOne(bytes) }),
  },
  {
    id: "malformed",
    name: "Malformed JSON",
    about: "a body that no parser takes",
    action: () => ({ type: "malformedJSON" }),
  },
  {
    id: "lagging",
    name: "Lagging replica",
    about: "reads of the state as it was",
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
    about: "a new one for the same bytes",
    action: () => ({ type: "validators", mode: "changing" }),
  },
  {
    id: "twice",
    name: "Duplicate",
    about: "carried out twice, the second reply arrives",
    action: () => ({ type: "duplicate" }),
  },
  {
    id: "lossy-live",
    name: "Lose live events",
    about: "every other frame of a live channel, once it is opened",
    action: () => ({ type: "live", lose: 0.5 }),
  },
];
