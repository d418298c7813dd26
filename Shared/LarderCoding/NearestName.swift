/// Finds the names that are spelled like another one, for messages about names that do not exist.
package enum NearestName {
    private static let lengthMaximum = 64

    /// The names that differ in at most a third of their bytes, most similar first.
    package static func similar(to name: String, in names: [String]) -> [String] {
        names.map { (distance: distance($0, name), name: $0) }
            .filter { $0.distance <= max(1, min($0.name.utf8.count, name.utf8.count) / 3) }
            .sorted { ($0.distance, $0.name) < ($1.distance, $1.name) }.map(\.name)
    }

    /// The edit distance of the first 64 bytes, in which two neighbours that are exchanged count once (optimal string alignment).
    private static func distance(_ left: String, _ right: String) -> Int {
        let (left, right) = (Array(left.utf8.prefix(lengthMaximum)), Array(right.utf8.prefix(lengthMaximum)))
        var row = Array(0...right.count)
        var before = row
        for (index, byte) in left.enumerated() {
            let last = row
            row[0] = index + 1
            for column in right.indices {
                var cost = last[column] + (right[column] == byte ? 0 : 1)
                if index > 0, column > 0, byte == right[column - 1], left[index - 1] == right[column] {
                    cost = min(cost, before[column - 1] + 1)
                }
                row[column + 1] = min(cost, row[column] + 1, last[column + 1] + 1)
            }
            before = last
        }
        return row[right.count]
    }
}
