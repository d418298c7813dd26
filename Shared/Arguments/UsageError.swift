/// Why a command line cannot be carried out; one line that says what to do.
package struct UsageError: Error {
    package let message: String

    package init(message: String) { self.message = message }
}
