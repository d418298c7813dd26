// `import Larder` re-exports the modules of the SDK, and LarderHTTP and LarderTime, whose types are part of their interfaces.
@_exported public import LarderDevice
@_exported public import LarderEvents
@_exported public import LarderHTTP
@_exported public import LarderHTTPCache
@_exported public import LarderImages
@_exported public import LarderMemory
@_exported public import LarderResources
@_exported public import LarderStorage
@_exported public import LarderTLS
@_exported public import LarderTelemetry
@_exported public import LarderTime
@_exported public import LarderTransport
