// The theme with the fonts of the reader's system: the site has none of its own.
import Theme from "vitepress/theme-without-fonts";
import "./style.css";

export default Theme;
