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

/// The modules with a file of their decisions, which is no source.
let decided: Set = [
    "LarderBackend", "LarderServer", "LarderMemory", "LarderStorage", "LarderTransport", "LarderHTTPCache",
    "LarderResources", "LarderImages", "Larder", "LarderTLS",
]

func decisions(_ name: String) -> [String] { decided.contains(name) ? ["DECISIONS.md"] : [] }

func library(_ name: String, _ path: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, path: path, exclude: decisions(name), swiftSettings: strict)
}

func sdk(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    library(name, "ClientSDK/\(name)", dependencies)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, path: "Tests/\(name)", swiftSettings: strict)
}

/// The fuzz targets are built by `Scripts/fuzz.py` only: every module is instrumented for them, and libFuzzer brings `main`.
let fuzzing: [Target] =
    Context.environment["LARDER_FUZZING"] == nil
    ? []
    : [
        .executableTarget(
            name: "fuzz",
            dependencies: [
                "LarderTime", "LarderCoding", "LarderHTTP", "LarderHTTPWire", "LarderSQLite",
                "LarderTLS",
                "LarderEngine", "LarderBackend", "LarderServer", "LarderStorage", "LarderTransport", "LarderHTTPCache",
                "LarderResources", "LarderImages",
            ],
            path: "Tests/Fuzzing",
            exclude: ["Dictionaries", "Seeds"],
            swiftSettings: strict
        )
    ]

let package = Package(
    name: "larder",
    products: [
        .executable(name: "larder-server", targets: ["larder-server"]),
        .executable(name: "larder", targets: ["LarderCommand"]),
        .library(name: "LarderServer", targets: ["LarderServer"]),
        .library(name: "Larder", targets: ["Larder"]),
        .library(name: "LarderMemory", targets: ["LarderMemory"]),
        .library(name: "LarderStorage", targets: ["LarderStorage"]),
        .library(name: "LarderTransport", targets: ["LarderTransport"]),
        .library(name: "LarderHTTPCache", targets: ["LarderHTTPCache"]),
        .library(name: "LarderResources", targets: ["LarderResources"]),
        .library(name: "LarderImages", targets: ["LarderImages"]),
        .library(name: "LarderDemo", targets: ["LarderDemo", "LarderModels"]),
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
        library("LarderArguments", "Shared/LarderArguments", ["LarderCoding"]),
        library("LarderTime", "Shared/LarderTime"),
        library("LarderCoding", "Shared/LarderCoding"),
        library("LarderHTTP", "Shared/LarderHTTP", ["LarderTime", "LarderCoding"]),
        library("LarderHTTPWire", "Shared/LarderHTTPWire", ["LarderHTTP", "LarderCoding"]),
        library("LarderSQLite", "Shared/LarderSQLite", ["CSQLite", "LarderTime"]),
        library("LarderTLS", "Shared/LarderTLS", ["LarderTime"]),
        library("LarderModels", "Shared/LarderModels"),

        // Server: engine, domain, control plane, command.
        .systemLibrary(name: "CSystem", path: "Server/CSystem"),
        .target(name: "CDocuments", path: "Server/CDocuments"),
        library(
            "LarderEngine",
            "Server/LarderEngine",
            [
                "CSystem", "LarderHTTPWire", "LarderHTTP", "LarderTLS", "LarderTime", "LarderCoding",
            ]
        ),
        .target(
            name: "LarderBackend",
            dependencies: [
                "CDocuments", "LarderEngine", "LarderHTTP", "LarderSQLite", "LarderCoding", "LarderTime",
                "LarderHTTPWire",
            ],
            path: "Server/LarderBackend",
            exclude: decisions("LarderBackend") + ["Endpoints/openapi.json", "Endpoints/problems.json"],
            swiftSettings: strict
        ),
        .target(
            name: "LarderServer",
            dependencies: [
                "LarderBackend", "LarderEngine", "LarderSQLite", "LarderCoding", "LarderHTTP", "LarderTLS",
                "LarderTime",
                "LarderHTTPWire",
            ],
            path: "Server/LarderServer",
            exclude: decisions("LarderServer")
                + ["API/control-openapi.json", "Faults/journeys.json", "Scenarios/scenarios.json", "Dashboard"],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "larder-server",
            dependencies: [
                "LarderArguments", "LarderServer", "LarderBackend", "LarderEngine", "LarderSQLite", "LarderTime",
                "LarderCoding", "LarderHTTP", "LarderHTTPWire", "LarderTLS",
            ],
            path: "Server/larder-server",
            swiftSettings: strict
        ),

        // ClientSDK: each module may use the ones that it names, and no other (Scripts/modules.py has the table).
        sdk("LarderEvents", ["LarderTime"]),
        sdk("LarderMemory", []),
        sdk("LarderStorage", ["LarderSQLite", "LarderTLS", "LarderCoding", "LarderTime"]),
        sdk(
            "LarderTransport",
            [
                "LarderHTTPWire", "LarderHTTP", "LarderTLS", "LarderTime", "LarderCoding",
                "LarderEvents",
            ]
        ),
        sdk(
            "LarderHTTPCache",
            ["LarderTransport", "LarderEvents", "LarderStorage", "LarderHTTP", "LarderTime", "LarderCoding"]
        ),
        sdk("LarderResources", ["LarderMemory", "LarderStorage", "LarderEvents", "LarderTime", "LarderCoding"]),
        sdk(
            "LarderImages",
            [
                "LarderHTTPCache", "LarderMemory", "LarderStorage", "LarderTransport", "LarderEvents", "LarderHTTP",
                "LarderTime", "LarderCoding",
            ]
        ),
        sdk("LarderDevice", ["LarderEvents", "LarderTransport", "LarderHTTP", "LarderTime"]),
        sdk("LarderTelemetry", ["LarderEvents", "LarderTime", "LarderCoding"]),
        sdk(
            "Larder",
            [
                "LarderTransport", "LarderHTTPCache", "LarderResources", "LarderImages", "LarderDevice",
                "LarderTelemetry", "LarderEvents", "LarderMemory", "LarderStorage", "LarderHTTP", "LarderTLS",
                "LarderTime", "LarderCoding",
            ]
        ),
        // The reference app sees what an app sees: it has no access to `package` declarations.
        .target(
            name: "LarderDemo",
            dependencies: ["Larder", "LarderModels"],
            path: "ClientSDK/LarderDemo",
            packageAccess: false,
            swiftSettings: strict
        ),
        .executableTarget(
            name: "LarderCommand",
            dependencies: [
                "LarderArguments", "LarderDemo", "Larder", "LarderModels", "LarderHTTP", "LarderCoding", "LarderServer",
            ],
            path: "ClientSDK/LarderCommand",
            swiftSettings: strict
        ),
        sdk(
            "LarderTesting",
            ["Larder", "LarderResources", "LarderHTTP", "LarderTime"]
        ),

        // Disk faults, for tests of both sides.
        .target(
            name: "FileFaults",
            dependencies: ["CSQLite", "LarderSQLite"],
            path: "Tests/FileFaults",
            swiftSettings: strict
        ),
        // Tests: each names all modules that it imports, so that it is rebuilt when one of them changes.
        // It takes over the executor of Swift concurrency in every test process.
        .target(name: "OrderedJobs", path: "Tests/OrderedJobs"),
        .target(
            name: "TestSupport",
            dependencies: ["OrderedJobs", "LarderTime", "LarderTLS"],
            path: "Tests/Support",
            swiftSettings: strict
        ),
        .target(
            name: "SDKTestSupport",
            dependencies: [
                "LarderTime", "LarderTLS", "LarderHTTPWire", "LarderSQLite", "LarderEvents", "LarderStorage",
                "LarderTransport",
                "LarderResources", "Larder",
                "FileFaults",
            ],
            path: "Tests/SDKSupport",
            swiftSettings: strict
        ),
        tests("LarderTimeTests", ["LarderTime", "TestSupport"]),
        tests("LarderCodingTests", ["LarderTime", "LarderCoding", "TestSupport"]),
        tests("LarderHTTPTests", ["LarderTime", "LarderHTTP", "TestSupport"]),
        tests("LarderHTTPWireTests", ["LarderTime", "LarderCoding", "LarderHTTP", "LarderHTTPWire", "TestSupport"]),
        tests("LarderTLSTests", ["LarderTime", "LarderTLS", "TestSupport"]),
        tests("LarderSQLiteTests", ["LarderSQLite", "FileFaults", "TestSupport"]),
        tests(
            "LarderEngineTests",
            ["LarderTime", "LarderHTTP", "LarderTLS", "LarderHTTPWire", "LarderEngine", "TestSupport"]
        ),
        tests(
            "LarderServerTests",
            [
                "LarderArguments", "LarderTime", "LarderCoding", "LarderHTTP", "LarderHTTPWire", "LarderSQLite",
                "LarderTLS", "LarderEngine", "LarderBackend", "LarderServer", "larder-server", "FileFaults",
                "TestSupport",
            ]
        ),
        tests("LarderMemoryTests", ["LarderTime", "LarderMemory", "LarderStorage", "TestSupport"]),
        tests(
            "LarderStorageTests",
            [
                "LarderTime", "LarderCoding", "LarderTLS", "LarderStorage", "FileFaults", "TestSupport",
                "SDKTestSupport",
            ]
        ),
        tests(
            "LarderTransportTests",
            [
                "LarderTime", "LarderCoding", "LarderHTTP", "LarderHTTPWire", "LarderTLS", "LarderEvents",
                "LarderTransport", "LarderTesting", "TestSupport", "SDKTestSupport",
            ]
        ),
        tests(
            "LarderHTTPCacheTests",
            [
                "LarderTime", "LarderHTTP", "LarderEvents", "LarderStorage", "LarderTransport", "LarderHTTPCache",
                "LarderTesting", "TestSupport", "SDKTestSupport",
            ]
        ),
        tests(
            "LarderResourcesTests",
            [
                "LarderTime", "LarderSQLite", "LarderEvents", "LarderMemory", "LarderStorage", "LarderTransport",
                "LarderResources", "LarderDevice", "LarderTesting", "FileFaults", "TestSupport", "SDKTestSupport",
            ]
        ),
        .testTarget(
            name: "LarderImagesTests",
            dependencies: [
                "LarderTime", "LarderCoding", "LarderHTTP", "LarderEvents", "LarderMemory", "LarderStorage",
                "LarderTransport", "LarderHTTPCache", "LarderImages", "LarderDevice", "LarderTelemetry", "Larder",
                "LarderTesting", "TestSupport", "SDKTestSupport",
            ],
            path: "Tests/LarderImagesTests",
            resources: [.copy("Fixtures")],
            swiftSettings: strict
        ),
        tests(
            "LarderDeviceTests",
            [
                "LarderTime", "LarderHTTP", "LarderEvents", "LarderMemory", "LarderTransport", "LarderDevice",
                "LarderTelemetry", "Larder", "LarderTesting", "TestSupport", "SDKTestSupport",
            ]
        ),
        tests(
            "LarderTelemetryTests",
            [
                "LarderTime", "LarderEvents", "LarderStorage", "LarderTelemetry", "Larder",
                "TestSupport", "SDKTestSupport",
            ]
        ),
        tests(
            "LarderTests",
            [
                "LarderTime", "LarderCoding", "LarderHTTP", "LarderModels", "LarderSQLite", "LarderStorage",
                "LarderTransport", "LarderEvents",
                "LarderHTTPCache", "LarderResources", "LarderImages", "LarderDevice", "LarderTelemetry", "Larder",
                "LarderDemo",
                "LarderTesting", "FileFaults", "TestSupport", "SDKTestSupport",
            ]
        ),
        tests(
            "LarderDemoTests",
            [
                "LarderTransport", "LarderTime", "LarderStorage", "LarderModels", "Larder", "LarderDemo",
                "LarderTesting",
                "TestSupport",
            ]
        ),
        tests(
            "LarderCommandTests",
            [
                "LarderArguments", "LarderTime", "LarderCoding", "LarderHTTP", "LarderModels", "LarderEvents",
                "LarderTransport", "LarderDevice", "LarderResources", "LarderImages", "LarderTelemetry", "Larder",
                "LarderDemo", "LarderCommand", "LarderTesting", "TestSupport",
            ]
        ),
        // The simulator replaces functions of the C library and the executor of Swift concurrency: it is a process of its own.
        .target(
            name: "SimulationRuntime",
            dependencies: ["CSQLite"],
            path: "Tests/SimulationRuntime"
        ),
        .executableTarget(
            name: "simulate",
            dependencies: [
                "SimulationRuntime", "LarderTime", "LarderHTTP", "LarderModels", "LarderSQLite", "LarderTLS",
                "LarderEngine",
                "LarderBackend", "LarderServer", "LarderEvents", "LarderStorage", "LarderTransport", "LarderResources",
                "LarderImages", "LarderDevice", "Larder", "LarderDemo", "LarderTesting", "FileFaults",
            ],
            path: "Tests/Simulation",
            exclude: ["plans.jsonl", "FINDINGS.md"],
            swiftSettings: strict
        ),
        // The client process that `Tests/Storm/storm.py` starts, kills and checks.
        .executableTarget(
            name: "storm-client",
            dependencies: ["LarderModels", "Larder", "LarderDemo"],
            path: "Tests/Storm",
            exclude: ["storm.py"],
            swiftSettings: strict
        ),
        tests(
            "EndToEndTests",
            [
                "LarderTime", "LarderCoding", "LarderHTTP", "LarderTLS", "LarderModels", "LarderEngine",
                "LarderBackend",
                "LarderServer", "larder-server", "LarderSQLite", "LarderEvents", "LarderStorage", "LarderTransport",
                "LarderHTTPCache",
                "LarderResources", "LarderImages", "LarderDevice", "LarderTelemetry", "Larder", "LarderDemo",
                "LarderCommand", "LarderTesting", "TestSupport", "SDKTestSupport",
            ]
        ),
    ] + fuzzing,
    swiftLanguageModes: [.v6]
)
