let serverVersion = "0.2.0"
