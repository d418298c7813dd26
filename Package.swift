// swift-tools-version: 6.2
import PackageDescription

/// Every target is built the same way: Swift 6 mode, strict memory safety, and no warning survives.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
]

func library(_ name: String, _ path: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, path: path, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, path: "Tests/\(name)", swiftSettings: strict)
}

/// The parts of the dashboard, which `DashboardDocument` puts together.
let dashboard = [
    "page.html", "style.css", "elements.js", "words.js", "server.js", "journal.js", "details.js", "table.js", "plot.js",
    "totals.js", "presets.js", "faults.js", "clock.js", "worlds.js", "acts.js", "main.js",
]

let package = Package(
    name: "larder",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .executable(name: "larder-server", targets: ["larder-server"]),
        .executable(name: "larder", targets: ["LarderCommand"]),
        .library(name: "LarderServer", targets: ["LarderServer"]),
        // With the modules whose types are in its interface: people and posts, clocks, HTTP fields.
        .library(name: "Larder", targets: ["Larder", "LarderModels", "LarderTime", "LarderHTTP"]),
        // TLS by Foundation: apart, because loading FoundationNetworking takes longer than everything else at a start.
        .library(name: "LarderURLSession", targets: ["LarderURLSession"]),
        .library(name: "LarderTesting", targets: ["LarderTesting"]),
    ],
    targets: [
        // Shared: what both sides speak.
        .systemLibrary(
            name: "CSQLite",
            path: "Shared/CSQLite",
            pkgConfig: "sqlite3",
            providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]
        ),
        library("LarderArguments", "Shared/Arguments"),
        library("LarderTime", "Shared/Time"),
        library("LarderCoding", "Shared/Coding"),
        library("LarderHTTP", "Shared/HTTP", ["LarderTime", "LarderCoding"]),
        library("LarderWebSocket", "Shared/WebSocket", ["LarderCoding"]),
        library("LarderSQLite", "Shared/SQLite", ["CSQLite"]),
        library("LarderModels", "Shared/Models"),

        // Server: engine, then domain and control, then the command.
        .systemLibrary(name: "CSystem", path: "Server/CSystem"),
        library(
            "LarderEngine",
            "Server/Engine",
            ["CSystem", "LarderHTTP", "LarderWebSocket", "LarderTime", "LarderCoding"]
        ),
        .target(
            name: "LarderServer",
            dependencies: [
                "LarderEngine", "LarderSQLite", "LarderCoding", "LarderHTTP", "LarderTime", "LarderWebSocket",
            ],
            path: "Server",
            exclude: ["CSystem", "Command", "Dockerfile", "Engine", "FAULTS.md"],
            sources: ["Backend", "Control"],
            resources: [.embedInCode("API/openapi.json")] + dashboard.map { .embedInCode("Dashboard/\($0)") },
            swiftSettings: strict
        ),
        .executableTarget(
            name: "larder-server",
            dependencies: [
                "LarderArguments", "LarderServer", "LarderEngine", "LarderSQLite", "LarderTime", "LarderCoding",
                "LarderHTTP",
            ],
            path: "Server/Command",
            swiftSettings: strict
        ),

        // ClientSDK.
        library(
            "Larder",
            "ClientSDK/Larder",
            ["LarderSQLite", "LarderHTTP", "LarderWebSocket", "LarderTime", "LarderCoding", "LarderModels"]
        ),
        library("LarderURLSession", "ClientSDK/URLSession", ["Larder", "LarderHTTP", "LarderTime", "LarderWebSocket"]),
        .executableTarget(
            name: "LarderCommand",
            dependencies: ["LarderArguments", "Larder", "LarderModels", "LarderTime", "LarderCoding", "LarderHTTP"],
            path: "ClientSDK/Command",
            swiftSettings: strict
        ),
        library(
            "LarderTesting",
            "ClientSDK/Testing",
            ["Larder", "LarderServer", "LarderTime", "LarderHTTP", "LarderWebSocket"]
        ),

        // Tests, beside each target's name.
        .target(name: "TestSupport", path: "Tests/Support", swiftSettings: strict),
        tests("LarderTimeTests", ["LarderTime", "TestSupport"]),
        tests("LarderCodingTests", ["LarderCoding", "TestSupport"]),
        tests("LarderHTTPTests", ["LarderHTTP", "LarderTime", "LarderCoding", "TestSupport"]),
        tests("LarderWebSocketTests", ["LarderWebSocket", "LarderCoding", "TestSupport"]),
        tests("LarderSQLiteTests", ["LarderSQLite", "CSQLite", "TestSupport"]),
        tests("LarderEngineTests", ["LarderEngine", "LarderHTTP", "LarderWebSocket", "LarderTime", "TestSupport"]),
        tests(
            "LarderServerTests",
            ["LarderServer", "LarderEngine", "LarderSQLite", "LarderCoding", "LarderHTTP", "LarderTime", "TestSupport"]
        ),
        .testTarget(
            name: "LarderTests",
            dependencies: [
                "Larder", "LarderURLSession", "LarderTesting", "LarderModels", "LarderTime", "LarderHTTP",
                "LarderCoding", "TestSupport",
            ],
            path: "Tests/LarderTests",
            resources: [.copy("Images/Fixtures")],
            swiftSettings: strict
        ),
        tests(
            "LarderCommandTests",
            ["LarderArguments", "LarderCommand", "Larder", "LarderModels", "LarderTime", "LarderCoding", "TestSupport"]
        ),
        tests(
            "EndToEndTests",
            [
                "Larder", "LarderURLSession", "LarderTesting", "LarderServer", "LarderEngine", "LarderModels",
                "LarderHTTP", "LarderTime",
                "LarderCoding", "LarderCommand", "TestSupport",
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)
