// swift-tools-version: 6.2
import PackageDescription

/// Measures requests over the transports: `bench.py` starts the server and the others.
let package = Package(
    name: "transport-benchmark",
    dependencies: [.package(name: "larder", path: "../..")],
    targets: [
        .executableTarget(
            name: "transport-benchmark",
            dependencies: [.product(name: "LarderTransport", package: "larder")],
            path: "Sources"
        )
    ],
    swiftLanguageModes: [.v6]
)
