/// The description of the API that the server serves (OpenAPI 3.1): `openapi.json` beside this file, built in.
enum OpenAPI {
    static let document: [UInt8] = PackageResources.openapi_json
}
