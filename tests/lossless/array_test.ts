// The cases of the covering array with a software adapter's kernels.
import { testCases } from "./array.ts";

testCases("software");
