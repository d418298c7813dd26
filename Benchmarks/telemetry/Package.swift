// swift-tools-version: 6.2
import PackageDescription

/// Starts a client in its own process, online or offline, and prints its telemetry. Run it with `swift run` in this directory while
/// a server runs.
let package = Package(
    name: "telemetry-benchmark",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../..")],
    targets: [
        .executableTarget(
            name: "telemetry-benchmark",
            dependencies: [.product(name: "LarderDemo", package: "larder")],
            path: "Sources"
        )
    ],
    swiftLanguageModes: [.v6]
)
