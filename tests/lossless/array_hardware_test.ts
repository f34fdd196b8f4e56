// The cases of the covering array with the kernels of hardware.
import { testCases } from "./array.ts";

testCases("hardware");
