// swift-tools-version: 6.2
import PackageDescription

// Benchmarks of parts use `package` declarations: they are compiled as a part of the package two directories up, whose identity is the name of its
// directory.
let identity = Context.packageDirectory.split(separator: "/").dropLast(2).last?.lowercased() ?? ""
let asPartOfLarder: [SwiftSetting] = [.unsafeFlags(["-package-name", identity])]

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
            path: "Sources",
            packageAccess: false,
            swiftSettings: asPartOfLarder
        ),
    ],
    swiftLanguageModes: [.v6]
)
