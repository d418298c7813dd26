import LarderBackend

let serverVersion = "0.2.0"
