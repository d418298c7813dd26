/// Finds the names that are spelled like another one, for messages about names that do not exist.
package enum NearestName {
    private static let lengthMaximum = 64

    /// The names, most similar first.
    package static func sorted(_ names: [String], by name: String) -> [String] {
        names.map { (distance: distance($0, name), name: $0) }
            .sorted { ($0.distance, $0.name) < ($1.distance, $1.name) }.map(\.name)
    }

    /// The most similar name; nil if none differs in at most a third of its bytes.
    package static func nearest(to name: String, in names: [String]) -> String? {
        guard let nearest = sorted(names, by: name).first else { return nil }
        return distance(nearest, name) <= max(1, min(nearest.utf8.count, name.utf8.count) / 3) ? nearest : nil
    }

    /// The edit distance of the first 64 bytes (Levenshtein).
    private static func distance(_ left: String, _ right: String) -> Int {
        let (left, right) = (Array(left.utf8.prefix(lengthMaximum)), Array(right.utf8.prefix(lengthMaximum)))
        var row = Array(0...right.count)
        for (index, byte) in left.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for column in right.indices {
                let cost = diagonal + (right[column] == byte ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(cost, row[column] + 1, diagonal + 1)
            }
        }
        return row[right.count]
    }
}
