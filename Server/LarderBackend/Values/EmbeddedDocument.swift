import CDocuments
package import LarderCoding

/// A document that the binary carries. `documents.c` has the paths of the files.
package enum EmbeddedDocument {
    /// The descriptions of the demo API and of the control plane, OpenAPI 3.1.
    case openapi, controlOpenAPI
    case problems, journeys, scenarios
    /// The dashboard's page with marks for the other two: its style, and its scripts as one module.
    case dashboardPage, dashboardStyle, dashboardScript

    /// A copy of the file.
    package var bytes: [UInt8] {
        let document =
            switch self {
            case .openapi: unsafe document_openapi()
            case .controlOpenAPI: unsafe document_control_openapi()
            case .problems: unsafe document_problems()
            case .journeys: unsafe document_journeys()
            case .scenarios: unsafe document_scenarios()
            case .dashboardPage: unsafe document_dashboard_page()
            case .dashboardStyle: unsafe document_dashboard_style()
            case .dashboardScript: unsafe document_dashboard_script()
            }
        // SAFETY: the bytes are a constant of the binary, and the count is that of its array.
        return unsafe [UInt8](UnsafeBufferPointer(start: document.bytes, count: document.count))
    }

    /// The file as JSON.
    package var json: JSONValue {
        // It cannot fail: the documents are a part of the binary, and tests read each.
        do { return try JSONParser.parse(bytes) } catch { preconditionFailure("The document \(self): \(error)") }
    }
}
