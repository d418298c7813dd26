// swift-tools-version: 6.2
import PackageDescription

/// The client process that `storm.py` starts, kills and checks.
let package = Package(
    name: "storm-client",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../..")],
    targets: [
        .executableTarget(
            name: "storm-client",
            dependencies: [.product(name: "LarderDemo", package: "larder")],
            path: "Sources"
        )
    ],
    swiftLanguageModes: [.v6]
)
