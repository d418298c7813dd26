// swift-tools-version: 6.2
import PackageDescription

/// Starts a client in a process of its own, online and offline, and tells what it counted. Run it with `swift run` in this
/// directory while a server runs.
let package = Package(
    name: "telemetry-benchmark",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../..")],
    targets: [
        .executableTarget(
            name: "telemetry-benchmark",
            dependencies: [.product(name: "Larder", package: "larder")],
            path: "Sources"
        )
    ],
    swiftLanguageModes: [.v6]
)
