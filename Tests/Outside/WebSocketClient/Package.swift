// swift-tools-version: 6.2
import PackageDescription

/// A client that returns every message to a server, for an outside suite (see ../README.md).
let package = Package(
    name: "websocket-echo",
    dependencies: [.package(name: "larder", path: "../../..")],
    targets: [
        .executableTarget(
            name: "websocket-echo",
            dependencies: [.product(name: "LarderTransport", package: "larder")],
            path: "Sources"
        )
    ],
    swiftLanguageModes: [.v6]
)
