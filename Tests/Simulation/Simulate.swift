import Foundation
import SimulationRuntime

@main enum Simulate {
    static func main() {
        let options: Options
        do { options = try Options(CommandLine.arguments.dropFirst()) } catch {
            print("simulate: \(error)\n\(Options.usage)")
            exit(2)
        }
        sim_install()
        sim_seed(1)
        do { exit(try Runner(options, Stage()).run()) } catch {
            print("simulate: the backend does not start: \(error)")
            exit(2)
        }
    }
}
