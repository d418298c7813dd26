// swift-tools-version: 6.2
import PackageDescription

/// Compares the disk store with SQLite's C interface. Run it with `swift run -c release` in this directory.
let package = Package(
    name: "larder-disk-benchmark",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "larder", path: "../..")],
    targets: [
        .systemLibrary(name: "CSQLiteBench", path: "CSQLiteBench", pkgConfig: "sqlite3"),
        .executableTarget(
            name: "disk-benchmark",
            dependencies: [.product(name: "Larder", package: "larder"), "CSQLiteBench"],
            path: "Sources"
        ),
    ],
    swiftLanguageModes: [.v6]
)
